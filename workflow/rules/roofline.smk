rule roofline:
    input:
        code=library("atenbench.roofline"),
    output:
        roofline="results/roofline.json",
    log:
        "logs/roofline.log",
    conda:
        "../../environment.yml"
    # Like measuring, it suffers from any work beside it.
    threads: cores_per_gpu
    resources:
        gpu=1,
    params:
        store="results/measurement_store",
        device=config["device"],
    message:
        "Measuring what the device does at best"
    script:
        "../scripts/roofline.py"
